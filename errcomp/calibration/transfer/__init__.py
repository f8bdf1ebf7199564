"""What a few measured runs of a device tell about its other runs.

`process` holds the numerics, `held_out` the errors that a fit made on devices it did not see.
`adapting` moves the predictions of a fitted model, `adaptation` says what that changed, and
`choosing` says which runs to measure.
"""

"""Systems that are propagated from the data sheet to what users wait for.

`training`: one iteration of a large model on 64 accelerators. `serving`: the 99th percentile of the
response time of a server. Their figures are inputs with a stated source or a stated assumption;
every result is computed.
"""

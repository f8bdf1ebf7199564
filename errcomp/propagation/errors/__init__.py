"""What is known of a predictor's errors, and what the errors of kernels share."""

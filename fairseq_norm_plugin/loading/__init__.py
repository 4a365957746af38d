"""From files to a model: what a directory or a checkpoint holds, the task that fits, and the weights, read once."""

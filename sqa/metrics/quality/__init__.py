"""Quality metrics of the final translations: sacrebleu's, and metrics that need a model, a program or a file."""

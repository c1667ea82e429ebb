"""Quality of the final translations: sacrebleu's metrics, and those that need a model, a program or a file."""

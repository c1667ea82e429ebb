"""What every training by gradients shares: the loop over its rounds, and checkpoints."""

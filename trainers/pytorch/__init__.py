"""What a PyTorch training function sees on a worker, and how the workers' gradients become one update."""

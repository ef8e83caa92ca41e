"""PyTorch by itself, on processes of torchrun or on a GPU, and by turns with a gang."""

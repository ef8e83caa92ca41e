"""Networks that people train: a GPT on text, a convolutional network on images, and the training of both."""

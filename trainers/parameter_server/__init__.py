"""Parameters on servers, to which workers push gradients: synchronously, as they come, or with bounded staleness."""

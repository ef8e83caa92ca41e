"""What people look at: a job's pictures, and the page that holds them."""

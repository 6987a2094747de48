"""Which sample is in which step, and the batches made of them."""

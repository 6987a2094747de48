"""Features of a frozen encoder: several views of every image, computed once and kept on disk."""

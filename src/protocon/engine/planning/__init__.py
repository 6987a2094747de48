"""What a run would do, before it starts: its data, its sizes, its memory, and how long it may take."""

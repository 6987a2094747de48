"""The parts that all methods are made of: pure functions, and small modules that hold buffers only."""

"""The paper's parts: pure functions, and small modules that hold buffers only."""

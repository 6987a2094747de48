"""The paper's tables as data: every cell with its figure, and the settings that give it."""

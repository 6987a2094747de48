"""What every other room may use: random draws, collectives, atomic files, durations, memory."""

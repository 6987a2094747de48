"""What everything else may use: draws, collectives, whole files, durations, memory."""

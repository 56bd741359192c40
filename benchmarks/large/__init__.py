"""Large problems: error against time and memory, and the limits of the machine."""

"""Behind the command line: reading files, running a command, writing its folder, and saying what was found in words."""

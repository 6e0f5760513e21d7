"""Seeds, parallel work, progress, warnings, compiled code and its cache, atomic files."""

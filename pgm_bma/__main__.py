"""``python -m pgm_bma`` is the command line."""

from pgm_bma.commands.main import main

if __name__ == "__main__":
    raise SystemExit(main())

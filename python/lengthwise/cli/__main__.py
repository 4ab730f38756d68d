"""`python -m lengthwise.cli`: the command line without an installed script."""

from lengthwise.cli import main

if __name__ == "__main__":
    main()

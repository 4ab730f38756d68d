"""`python -m lengthwise`: the command line, where the script is not on the path."""

from lengthwise.cli import main

if __name__ == "__main__":
    main()

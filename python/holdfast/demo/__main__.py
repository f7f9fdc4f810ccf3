"""`python -m holdfast.demo`: what the `holdfast demo` command starts."""

from holdfast.demo.orchestrate import main

if __name__ == "__main__":
    raise SystemExit(main())

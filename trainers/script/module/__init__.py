"""The folder that a program's Python path gets, so that it finds the module `warmband`."""

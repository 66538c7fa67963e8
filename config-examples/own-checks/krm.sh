#!/bin/sh
# Runs a KRM function beside this file. Such a function fails where it finds something; its results say what.
"$(dirname "$0")/$1" || [ $? -eq 1 ]

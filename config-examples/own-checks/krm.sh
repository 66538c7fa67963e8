#!/bin/sh
# Runs a KRM function in this folder. Such a function exits with 1 if it finds something; its results say what.
"$(dirname "$0")/$1" || [ $? -eq 1 ]

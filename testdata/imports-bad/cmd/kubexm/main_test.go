package main

// Tests may reach for testdata, everywhere.
import _ "example.test/house/testdata/upstream"

package fetch_test

// Inside one top folder tests are free.
import _ "example.test/house/bundle"

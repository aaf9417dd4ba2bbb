package images

// multiarch is the folder of this architecture's libraries in a Debian.
const multiarch = "x86_64-linux-gnu"

package images

// multiarch is the folder of this architecture's libraries in a Debian.
const multiarch = "aarch64-linux-gnu"

package versions

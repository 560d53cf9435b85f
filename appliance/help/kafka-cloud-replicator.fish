source (status dirname)/appliance.fish

source "${BASH_SOURCE[0]%/*}/appliance.bash"

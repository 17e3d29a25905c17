#include "packet/control.hpp"

namespace orrery::network {

extern const ControlType no_control;
constinit const ControlType no_control{
    .name = "none",
    .help = "flows send at the line rate as far as their windows let them",
};

}  // namespace orrery::network

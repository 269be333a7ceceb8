#pragma once
#include <string>

namespace sheaf {

/// "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Neoverse-V1"; empty where the machine does not say.
std::string processor_name();

/// Its name and how many cores of it there are: what a device profile of it is good for.
std::string processor_and_cores();

}  // namespace sheaf

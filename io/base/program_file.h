#pragma once
#include <string>

namespace sheaf {

/// The file that this code was loaded from: the program, or the library of the Python package.
std::string program_file();

/// A file in a folder above the program, such as a clone of the project; "" where there is none.
std::string find_above_program(const std::string& name);

}  // namespace sheaf

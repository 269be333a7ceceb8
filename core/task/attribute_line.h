#pragma once
#include <string>

#include "core/task/schema.h"

namespace sheaf {

/// An attribute as the model reads it in a list: "Size: of the shoe (a number)" and a newline.
std::string attribute_line(const Attribute& attribute);

}  // namespace sheaf

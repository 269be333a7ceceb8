#pragma once
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace sheaf {

/// The message of the sheaf::Error that `work` throws; "no error" where it throws none.
template <class Work>
std::string error_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The call must throw an input error whose message holds every one of `parts`.
template <class Call>
void expect_refusal(Call call, const std::vector<std::string>& parts) {
  try {
    call();
    ADD_FAILURE() << "nothing was refused; expected \"" << parts.front() << "\"";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "wanted \"" << part << "\" in: " << error.what();
    }
  }
}

}  // namespace sheaf

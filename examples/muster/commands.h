#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace program {

/// What a command is called with: `muster COMMAND [FILE] [options]`.
struct Call {
  std::string program;    ///< as in "muster train"
  std::string file = {};  ///< "" if the first argument is an option
  std::vector<std::string> options = {};
};

// Each returns the exit status, prints help where it is asked for, and throws as runProgram tells.

int train(const Call& call);
int evaluate(const Call& call);
int predict(const Call& call);
int summary(const Call& call);
int plan(const Call& call);
int convert(const Call& call);
int schema(const Call& call);
int strategies(const Call& call);
int page(const Call& call);

struct Command {
  std::string_view name;
  std::string_view file;  ///< what its file is, as in "run.json"; "": it takes none
  std::string_view does;  ///< in a line
  int (*run)(const Call& call);
};

/// All of them, in the order of the help.
const std::vector<Command>& commands();

}  // namespace program

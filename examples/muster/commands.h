#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace program {

/// Arguments of a command: `muster COMMAND [FILE] [options]`.
struct Call {
  std::string program;                    ///< such as "muster train"
  std::vector<std::string> options = {};  ///< all arguments, also files
  // What `readOptions` finds among them:
  mutable std::string file = {};                 ///< "": none
  mutable std::vector<std::string> others = {};  ///< after it: the rows to predict, or a model
};

// Each returns the exit status, prints help on request, and throws the errors that runProgram handles.

int train(const Call& call);
int evaluate(const Call& call);
int predict(const Call& call);
int summary(const Call& call);
int plan(const Call& call);
int convert(const Call& call);
int schema(const Call& call);
int strategies(const Call& call);
int page(const Call& call);
int compare(const Call& call);
int example(const Call& call);

struct Command {
  std::string_view name;
  std::string_view file;  ///< its file in the help, such as "run.json"; "": it takes none
  std::string_view does;  ///< description in one line
  int (*run)(const Call& call);
};

/// All commands in the order of the help.
const std::vector<Command>& commands();

}  // namespace program

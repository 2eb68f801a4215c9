# Compiles a layer or an updater (KIND) without the last of its members, and reads the first error.
set(layer [[
#include "muster/core/nn/layer.h"
struct Mine {
  static constexpr std::string_view kType = "mine";
  std::string name = {};
  muster::Shape outputShape(const muster::Shape& input) const { return input; }
  void fields(muster::Fields&) {}
  void validate() const {}
};
std::vector<muster::Layer> layers{Mine{}};
]])
set(layer_lacks "this layer lacks: std::unique_ptr<ModuleProgram> compile\\(")
set(updater [[
#include "muster/core/optim/updater.h"
struct Mine {
  static constexpr std::string_view kType = "mine";
  muster::Schedule learningRate = 0.1;
  std::vector<std::string> stateNames() const { return {}; }
  void fields(muster::Fields&) {}
  void validate() const {}
};
muster::Updater rule = Mine{};
]])
set(updater_lacks "this updater lacks: double apply\\(")

set(source "${WORK}/missing_member_${KIND}.cpp")
file(WRITE "${source}" "${${KIND}}")
execute_process(COMMAND "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDES}" "${source}"
  RESULT_VARIABLE failed ERROR_VARIABLE errors OUTPUT_QUIET)
if(NOT failed)
  message(FATAL_ERROR "a ${KIND} without a member compiles")
endif()
string(REGEX MATCH "error: [^\n]*" first "${errors}")
if(NOT first MATCHES "${${KIND}_lacks}")
  message(FATAL_ERROR "the first error does not name the member: ${first}\n${errors}")
endif()

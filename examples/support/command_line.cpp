#include "examples/support/command_line.h"

#include <fmt/ranges.h>

namespace example {

namespace po = boost::program_options;

po::variables_map parseCommandLine(int argc, const char* const* argv,
                                   const po::options_description& options) {
  po::variables_map given;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto parsed = po::command_line_parser(argc, argv).options(options).style(style).run();
    for (const auto& option : parsed.options)
      muster::require(option.position_key < 0, "unexpected argument \"{}\"; --help lists the options",
                      fmt::join(option.value, " "));
    po::store(parsed, given);
    po::notify(given);
  } catch (const po::error& error) {
    throw muster::InvalidArgument(fmt::format("{}; --help lists the options", error.what()));
  }
  return given;
}

bool said(const po::variables_map& given, const char* option) {
  return given.count(option) > 0 && !given[option].defaulted();
}

}  // namespace example

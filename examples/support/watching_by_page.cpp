#include <fmt/format.h>

#include "examples/support/watching.h"
#include "muster/core/listeners/watch/page/page_listener.h"

namespace example {
namespace {

class PageWatcher final : public Watcher {
 public:
  PageWatcher(const WatchOptions& options, std::shared_ptr<const muster::EvaluationListener> tests)
      : listener_(std::make_shared<muster::PageListener>(
            muster::PageOptions{.port = options.pagePort,
                                .serve = options.page,
                                .curves = options.curves.empty() ? options.stillCurves : options.curves,
                                .group = options.group,
                                .evaluation = std::move(tests),
                                .sink = [](std::string_view line) {
                                  fmt::print("{}\n", line);
                                  std::fflush(stdout);
                                }})) {}

  muster::Listeners listeners() override { return {listener_, listener_->workers()}; }
  void text(std::string_view name, std::string_view text) override { listener_->text(name, text); }
  void options(const std::vector<muster::HyperParameter>& options, const std::vector<std::string>&,
               std::string_view) override {
    listener_->hyperParameters(options);
  }
  void result(std::string_view name, double value) override {
    listener_->text("result", fmt::format("{}: {}", name, value));
  }
  void failed(const std::exception_ptr& failure) override { listener_->failed(failure); }
  std::string still(const std::string& document) override { return listener_->still(document); }

 private:
  std::shared_ptr<muster::PageListener> listener_;
};

}  // namespace

std::unique_ptr<Watcher> pageWatcher(const WatchOptions& options,
                                     std::shared_ptr<const muster::EvaluationListener> tests) {
  return std::make_unique<PageWatcher>(options, std::move(tests));
}

}  // namespace example

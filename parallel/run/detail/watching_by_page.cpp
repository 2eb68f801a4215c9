#include <fmt/format.h>

#include "muster/core/listeners/watch/page/page_listener.h"
#include "muster/parallel/run/detail/watching.h"

namespace muster::detail {
namespace {

class PageWatcher final : public Watcher {
 public:
  PageWatcher(const WatchOptions& options, std::shared_ptr<const EvaluationListener> tests)
      : listener_(std::make_shared<PageListener>(
            PageOptions{.port = options.pagePort,
                        .serve = options.page,
                        .curves = options.curves.empty() ? options.stillCurves : options.curves,
                        .group = options.group,
                        .evaluation = std::move(tests),
                        .sink = [](std::string_view line) {
                          fmt::print("{}\n", line);
                          std::fflush(stdout);
                        }})) {}

  Listeners listeners() override { return {listener_, listener_->workers()}; }
  void text(std::string_view name, std::string_view text) override { listener_->text(name, text); }
  void options(const std::vector<HyperParameter>& options, const std::vector<std::string>&,
               std::string_view) override {
    listener_->hyperParameters(options);
  }
  void result(std::string_view name, double value) override {
    listener_->text("result", fmt::format("{}: {}", name, value));
  }
  void failed(const std::exception_ptr& failure) override { listener_->failed(failure); }
  std::string still(const std::string& document) override { return listener_->still(document); }

 private:
  std::shared_ptr<PageListener> listener_;
};

}  // namespace

bool pagesBuilt() {
  return true;
}

std::unique_ptr<Watcher> pageWatcher(const WatchOptions& options,
                                     std::shared_ptr<const EvaluationListener> tests) {
  return std::make_unique<PageWatcher>(options, std::move(tests));
}

}  // namespace muster::detail

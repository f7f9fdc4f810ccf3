// `holdfast tensors convert`: a tensor file of any kind that is read, written as one of ours.
#pragma once

namespace CLI {
class App;
}

namespace holdfast::app {

void add_tensors_convert(CLI::App& tensors, int& exit_code);

}  // namespace holdfast::app

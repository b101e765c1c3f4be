#pragma once

// Everything that a program needs: #include <kumi/kumi.hpp>

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/job/job.hpp"
#include "kumi/job/pm_job.hpp"

mod depending;
mod ranges;
mod reading;
mod resolving;

// Package document reads a YAML document that a person writes, strictly: into Go types
// whose tags say what a field takes, with every problem found in one go, and with the
// line of each. It knows nothing of what a document is about: a Schema says that.
//
//   - Parse bounds the text and gives the Document;
//   - Decode, Required and SetDefaults fill and complete a value;
//   - Take and Put move a field that is written under a second spelling;
//   - Fail and Warn are for rules that hold fields against each other.
//
// It imports no other package of this module.
package document

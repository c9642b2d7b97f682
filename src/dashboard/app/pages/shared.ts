import '../components/confirm-button.tsx'
import '../components/fields.tsx'
import '../components/form.tsx'
import '../components/inline-form.tsx'
import '../components/layout.tsx'
import '../components/query.tsx'
import '../components/pages.tsx'
import '../components/secret-once.tsx'
import '../components/verification-prompt.tsx'
import '../openid/api.ts'
import '../passkeys/api.ts'

// Modules that most pages but the feed share. Each group of pages imports this file, so that they
// are one script, and not one for each combination of pages.

/** The pages without navigation: before sign-in, and the quick start. */
import './shared.ts'

export { default as Invite } from './invite.tsx'
export { default as Reset } from './reset.tsx'
export { default as Setup } from './setup.tsx'
export { default as SignIn } from './sign-in.tsx'
export { default as NoProjects } from './no-projects.tsx'
export { default as Start } from './start.tsx'
